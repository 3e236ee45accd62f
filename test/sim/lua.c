/*
 * The interpreter of scripts; see script.h. A command called by a script answers into a buffer, which is read back into
 * Lua. Globals cannot be set, nor read where there are none.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"
#include "sha1.h"
#include "values.h"

/* A script that calls so many commands is in a loop. */
enum { CALLS_MAX = 100000 };

static lua_State *lua;
static const struct call *running; /* the call of the script that runs */
static unsigned calls;             /* how many commands it has called */

/* The words of the command that the script calls. */
static struct {
    const char **argv;
    size_t *lens;
    int room;
} words;

/* --- redis.* ------------------------------------------------------------------------------------------------------ */

/* Pushes {err = ...}: with ERR before it, unless it begins with a code of its own. */
static void push_error(lua_State *state, const char *error) {
    const char *text = error[0] == '-' ? error + 1 : error;
    if (error[0] == '-' && strchr(text, ' '))
        lua_pushstring(state, text);
    else
        lua_pushfstring(state, "ERR %s", text);
    lua_createtable(state, 0, 1);
    lua_insert(state, -2);
    lua_setfield(state, -2, "err");
}

static void words_need(int count) {
    if (count <= words.room)
        return;
    words.room = 2 * count;
    words.argv = need(realloc(words.argv, (size_t)words.room * sizeof(*words.argv)));
    words.lens = need(realloc(words.lens, (size_t)words.room * sizeof(*words.lens)));
}

/* Turns the arguments on the stack into strings, in place; what is wrong with them, or NULL. */
static const char *read_words(lua_State *state, int count) {
    char digits[40];
    if (count == 0)
        return "Please specify at least one argument for this redis lib call";
    words_need(count);
    for (int i = 0; i < count; i++) {
        int type = lua_type(state, i + 1);
        if (type != LUA_TSTRING && type != LUA_TNUMBER)
            return "Lua redis lib command arguments must be strings or integers";
        if (type == LUA_TNUMBER) { /* Lua's own way would round it */
            snprintf(digits, sizeof(digits), "%.17g", lua_tonumber(state, i + 1));
            lua_pushstring(state, digits);
            lua_replace(state, i + 1);
        }
        words.argv[i] = lua_tolstring(state, i + 1, &words.lens[i]);
    }
    return NULL;
}

/* Runs the command of the arguments and pushes what it answers. */
static void call_command(lua_State *state) {
    struct output *reply = &running->server->script_reply;
    struct call call = {
        .server = running->server, .session = running->session, .argc = lua_gettop(state), .reply = reply};
    const char *wrong = read_words(state, call.argc);
    if (++calls > CALLS_MAX)
        luaL_error(state, "the script does not end");
    if (wrong) {
        push_error(state, wrong);
        return;
    }
    call.argv = words.argv;
    call.lens = words.lens;
    reply->len = 0;
    command_from_script(&call);
    value_push_reply(state, reply->bytes, reply->bytes + reply->len);
}

static bool is_error(lua_State *state) {
    if (!lua_istable(state, -1))
        return false;
    lua_getfield(state, -1, "err");
    bool found = !lua_isnil(state, -1);
    lua_pop(state, 1);
    return found;
}

static int redis_call(lua_State *state) {
    call_command(state);
    return is_error(state) ? lua_error(state) : 1;
}

static int redis_pcall(lua_State *state) {
    call_command(state);
    return 1;
}

static int redis_sha1hex(lua_State *state) {
    char hex[41];
    size_t len;
    if (lua_gettop(state) != 1) {
        push_error(state, "wrong number of arguments");
        return lua_error(state);
    }
    const char *text = lua_tolstring(state, 1, &len);
    sha1_hex(text ? text : "", len, hex);
    lua_pushlstring(state, hex, 40);
    return 1;
}

static bool one_string(lua_State *state) {
    return lua_gettop(state) == 1 && lua_type(state, 1) == LUA_TSTRING;
}

static int redis_error_reply(lua_State *state) {
    if (!one_string(state)) {
        push_error(state, "wrong number or type of arguments");
        return 1;
    }
    const char *error = lua_tostring(state, 1);
    if (error[0] != '-')
        error = lua_pushfstring(state, "-%s", error);
    push_error(state, error);
    return 1;
}

static int redis_status_reply(lua_State *state) {
    if (one_string(state))
        value_push_field(state, "ok", lua_tostring(state, 1), lua_objlen(state, 1));
    else
        push_error(state, "wrong number or type of arguments");
    return 1;
}

/* The global pcall() of Redis, which makes an error of redis.call() a string. */
static int global_pcall(lua_State *state) {
    luaL_checkany(state, 1);
    bool fine = lua_pcall(state, lua_gettop(state) - 1, LUA_MULTRET, 0) == 0;
    if (!fine && is_error(state))
        lua_getfield(state, -1, "err");
    lua_pushboolean(state, fine);
    lua_insert(state, fine ? 1 : -2);
    return fine ? lua_gettop(state) : 2;
}

/* --- The globals -------------------------------------------------------------------------------------------------- */

static int on_missing_global(lua_State *state) {
    return luaL_error(state, "Script attempted to access nonexistent global variable '%s'", luaL_checkstring(state, 2));
}

static int on_set_global(lua_State *state) {
    return luaL_error(state, "Attempt to modify a readonly table");
}

/* Sets one entry of the metatable of the table on top. */
static void set_metamethod(const char *name, lua_CFunction function) {
    if (!lua_getmetatable(lua, -1))
        lua_createtable(lua, 0, 2);
    lua_pushcfunction(lua, function);
    lua_setfield(lua, -2, name);
    lua_setmetatable(lua, -2);
}

/* What scripts see for _G is an empty table, so that setting anything in it is noticed. */
static void make_sandbox(void) {
    lua_newtable(lua);
    lua_createtable(lua, 0, 2);
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    lua_setfield(lua, -2, "__index");
    lua_setmetatable(lua, -2);
    set_metamethod("__newindex", on_set_global);
    lua_pushvalue(lua, -1);
    lua_setglobal(lua, "_G");
    lua_setfield(lua, LUA_REGISTRYINDEX, "sandbox");
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    set_metamethod("__index", on_missing_global);
    lua_pop(lua, 1);
}

/* As Redis's handler: what was thrown becomes {err, source, line}. */
static int on_error(lua_State *state) {
    lua_Debug where;
    bool known = lua_getstack(state, 1, &where) && lua_getinfo(state, "Sl", &where);
    if (known && strcmp(where.what, "C") == 0)
        known = lua_getstack(state, 2, &where) && lua_getinfo(state, "Sl", &where);
    if (!lua_istable(state, 1)) {
        lua_getglobal(state, "tostring");
        lua_insert(state, 1);
        lua_call(state, 1, 1);
        lua_createtable(state, 0, 3);
        lua_pushfstring(state, "ERR %s", lua_tostring(state, 1));
        lua_setfield(state, -2, "err");
        lua_replace(state, 1);
    }
    if (known) {
        lua_pushstring(state, where.source);
        lua_setfield(state, 1, "source");
        lua_pushinteger(state, where.currentline);
        lua_setfield(state, 1, "line");
    }
    return 1;
}

/* Made with the first script. What would make runs differ, or reach out of them, is left out. */
static void open_lua(void) {
    static const luaL_Reg redis[] = {
        {"call", redis_call},       {"error_reply", redis_error_reply},   {"pcall", redis_pcall},
        {"sha1hex", redis_sha1hex}, {"status_reply", redis_status_reply}, {0}};
    static const lua_CFunction libraries[] = {luaopen_base, luaopen_table, luaopen_string, luaopen_math};
    static const char *const left_out[] = {"dofile", "loadfile", "newproxy", "print"};
    lua = need(luaL_newstate());
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        lua_pushcfunction(lua, libraries[i]);
        lua_call(lua, 0, 0);
    }
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
        lua_pushnil(lua);
        lua_setglobal(lua, left_out[i]);
    }
    luaL_register(lua, "redis", redis);
    lua_register(lua, "pcall", global_pcall);
    lua_getglobal(lua, "math");
    lua_pushnil(lua);
    lua_setfield(lua, -2, "random");
    lua_settop(lua, 0);
    lua_newtable(lua);
    lua_setfield(lua, LUA_REGISTRYINDEX, "scripts"); /* functions by digests */
    lua_newtable(lua);
    lua_setfield(lua, LUA_REGISTRYINDEX, "digests"); /* by texts */
    make_sandbox();
    lua_pushcfunction(lua, on_error); /* stays at 1 */
}

/* --- Scripts ------------------------------------------------------------------------------------------------------ */

/* Pushes the function; false, and pushes nothing, if there is none. */
static bool push_script(const char *sha) {
    lua_getfield(lua, LUA_REGISTRYINDEX, "scripts");
    lua_pushlstring(lua, sha, 40);
    lua_rawget(lua, -2);
    lua_remove(lua, -2);
    if (!lua_isnil(lua, -1))
        return true;
    lua_pop(lua, 1);
    return false;
}

void script_digest(const char *text, size_t len, char sha[41]) {
    if (!lua)
        open_lua();
    lua_getfield(lua, LUA_REGISTRYINDEX, "digests");
    lua_pushlstring(lua, text, len);
    lua_pushvalue(lua, -1);
    lua_rawget(lua, -3);
    if (lua_isnil(lua, -1)) {
        sha1_hex(text, len, sha);
        lua_pop(lua, 1);
        lua_pushlstring(lua, sha, 40);
        lua_rawset(lua, -3);
        lua_pop(lua, 1);
    } else {
        memcpy(sha, lua_tostring(lua, -1), 41);
        lua_pop(lua, 3);
    }
}

bool script_compile(const char sha[41], const char *text, size_t len, struct output *reply) {
    if (push_script(sha)) {
        lua_pop(lua, 1);
        return true;
    }
    if (luaL_loadbuffer(lua, text, len, "@user_script") != 0) {
        reply_error(reply, "ERR Error compiling script (new function): %s", lua_tostring(lua, -1));
        lua_pop(lua, 1);
        return false;
    }
    lua_getfield(lua, LUA_REGISTRYINDEX, "sandbox");
    lua_setfenv(lua, -2);
    lua_getfield(lua, LUA_REGISTRYINDEX, "scripts");
    lua_insert(lua, -2);
    lua_setfield(lua, -2, sha);
    lua_pop(lua, 1);
    return true;
}

static void set_words(const struct call *call, const char *name, int from, int end) {
    lua_pushstring(lua, name);
    lua_createtable(lua, end - from, 0);
    for (int i = from; i < end; i++) {
        lua_pushlstring(lua, call->argv[i], call->lens[i]);
        lua_rawseti(lua, -2, i - from + 1);
    }
    lua_rawset(lua, LUA_GLOBALSINDEX);
}

/* The thrown {err, source, line} on top. */
static void answer_thrown(const struct call *call, const char *sha) {
    const char *error = value_push_string_field(lua, "err") ? lua_tostring(lua, -1) : "ERR unknown error";
    lua_getfield(lua, 2, "source");
    lua_getfield(lua, 2, "line");
    if (lua_isstring(lua, -1) && lua_isstring(lua, -2))
        reply_error(call->reply, "%s script: %s, on %s:%s.", error, sha, lua_tostring(lua, -2), lua_tostring(lua, -1));
    else
        reply_error(call->reply, "%s", error);
}

void script_run(const struct call *call, const char sha[41], int args, int keys) {
    unsigned db = call->session->db; /* which a script changes for itself alone */
    set_words(call, "KEYS", args, args + keys);
    set_words(call, "ARGV", args + keys, call->argc);
    push_script(sha);
    running = call;
    calls = 0;
    if (lua_pcall(lua, 0, 1, 1) == 0)
        value_answer(lua, call->reply);
    else
        answer_thrown(call, sha);
    lua_settop(lua, 1);
    call->session->db = db;
}

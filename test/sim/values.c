/* Values on their way between Lua and RESP; see values.h. */
#include "values.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

/* --- From RESP to Lua --------------------------------------------------------------------------------------------- */

void value_push_field(lua_State *state, const char *name, const char *bytes, size_t len) {
    lua_createtable(state, 0, 1);
    lua_pushlstring(state, bytes, len);
    lua_setfield(state, -2, name);
}

const char *value_push_reply(lua_State *state, const char *at, const char *end) {
    const char *line = at + 1, *line_end = memchr(line, '\r', (size_t)(end - line)), *next = line_end + 2;
    long long number = strtoll(line, NULL, 10);
    luaL_checkstack(state, 4, "too deep");
    switch (*at) {
    case ':':
        lua_pushnumber(state, (lua_Number)number);
        return next;
    case '+':
        value_push_field(state, "ok", line, (size_t)(line_end - line));
        return next;
    case '-':
        value_push_field(state, "err", line, (size_t)(line_end - line));
        return next;
    case '$':
        if (number < 0) {
            lua_pushboolean(state, 0);
            return next;
        }
        lua_pushlstring(state, next, (size_t)number);
        return next + number + 2;
    default: /* '*' */
        if (number < 0) {
            lua_pushboolean(state, 0);
            return next;
        }
        lua_createtable(state, (int)number, 0);
        for (int i = 1; i <= number; i++) {
            next = value_push_reply(state, next, end);
            lua_rawseti(state, -2, i);
        }
        return next;
    }
}

/* --- From Lua to RESP --------------------------------------------------------------------------------------------- */

/* As a conversion by the processor: what has no place among integers is the least of them. */
static int64_t truncated(double number) {
    return number >= -0x1p63 && number < 0x1p63 ? (int64_t)number : INT64_MIN;
}

bool value_push_string_field(lua_State *state, const char *name) {
    lua_pushstring(state, name);
    lua_rawget(state, -2);
    if (lua_type(state, -1) == LUA_TSTRING)
        return true;
    lua_pop(state, 1);
    return false;
}

/* Up to the first nil. */
static void answer_array(lua_State *state, struct output *reply) {
    struct output items = {0};
    int count = 0;
    for (;; count++) {
        lua_rawgeti(state, -1, count + 1);
        if (lua_isnil(state, -1))
            break;
        value_answer(state, &items);
    }
    lua_pop(state, 1);
    reply_array(reply, (size_t)count);
    if (count > 0)
        reply_raw(reply, items.bytes, items.len);
    reply_free(&items);
}

static void answer_table(lua_State *state, struct output *reply) {
    if (value_push_string_field(state, "err")) {
        reply_error(reply, "%s", lua_tostring(state, -1));
        lua_pop(state, 1);
    } else if (value_push_string_field(state, "ok")) {
        reply_status(reply, lua_tostring(state, -1), lua_objlen(state, -1));
        lua_pop(state, 1);
    } else {
        answer_array(state, reply);
    }
}

void value_answer(lua_State *state, struct output *reply) {
    size_t len;
    const char *bytes;
    if (!lua_checkstack(state, 4)) {
        reply_error(reply, "ERR reached lua stack limit");
        lua_pop(state, 1);
        return;
    }
    switch (lua_type(state, -1)) {
    case LUA_TSTRING:
        bytes = lua_tolstring(state, -1, &len);
        reply_bulk(reply, bytes, len);
        break;
    case LUA_TNUMBER:
        reply_integer(reply, truncated(lua_tonumber(state, -1)));
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(state, -1))
            reply_integer(reply, 1);
        else
            reply_nil(reply);
        break;
    case LUA_TTABLE:
        answer_table(state, reply);
        break;
    default:
        reply_nil(reply);
    }
    lua_pop(state, 1);
}

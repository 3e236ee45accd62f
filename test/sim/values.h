/*
 * Values on their way between Lua and RESP, as Redis turns them: nil is false, a status is {ok = ...}, an error is
 * {err = ...}, and a number is cut down to an integer. It owns nothing.
 */
#ifndef EVLOCK_SIM_VALUES_H
#define EVLOCK_SIM_VALUES_H

#include <lua.h>

#include "world/resp.h"

/* Pushes the reply at `at`, of well-formed RESP, and returns what is behind it. */
const char *value_push_reply(lua_State *state, const char *at, const char *end);
/* Pushes a table with one string. */
void value_push_field(lua_State *state, const char *name, const char *bytes, size_t len);
/* Pushes the field of the table on top if it is a string; else pushes nothing. */
bool value_push_string_field(lua_State *state, const char *name);
/* Answers with the value on top, and pops it. */
void value_answer(lua_State *state, struct output *reply);

#endif

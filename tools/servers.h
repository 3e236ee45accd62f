/*
 * What the library knows of each server, for evlock doctor: where it is and what it is, whether it keeps its data, what
 * it lacks and what that costs. It owns nothing, and never sends anything.
 */
#ifndef SERVERS_H
#define SERVERS_H

#include <evlock/evlock.h>

#include "json.h"

/** Whether each server has come or is away. */
bool servers_have_come(const evlock_client *client);

/** Whether one is not connected, and not merely kept from granting for a while. */
bool servers_lack_one(const evlock_client *client);

/** Prints some rows for each server on the standard output. */
void servers_print(const evlock_client *client);

/** The same as an array of objects, one for each server. */
void servers_print_json(const evlock_client *client, struct json *json, const char *key);

#endif

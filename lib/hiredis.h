/* What node.c and login.c share: the two files that know hiredis. */
#ifndef EVL_HIREDIS_H
#define EVL_HIREDIS_H

#include <hiredis/async.h>

#include "node.h"

/* Cuts off what an error quotes of the command. */
void evl_node_drop_quotes(char *error);

/* Notes the last trouble in words. */
void evl_node_note(struct node *node, const char *error);

/* node.c: digests are of no use on this connection: scripts are sent whole from now on. */
void evl_node_spell(struct node *node, const char *why);

/* node.c: opens a connection to the next address. */
void evl_node_open(struct node *node);

/* login.c: queues the login; loads every script; false: out of memory. */
bool evl_node_greet(struct node *node);
bool evl_node_load_scripts(struct node *node);

/* node.c: the login is done. `settled`: nothing of the connection before can still run. */
void evl_node_ready(struct node *node, bool settled);

#endif

/*
 * What a server says of itself: the texts of INFO, CLUSTER INFO and CLIENT INFO as values, and whether locks can be
 * kept there at all. It owns nothing, keeps nothing and asks nothing. Any text is taken: what is not said is not there.
 */
#ifndef EVL_INFO_H
#define EVL_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

/* Of a run or replication id, with its NUL. */
#define ID_SIZE 41

/* What a server is called. */
struct info_product {
    const char *name; /* "": not said */
    char version[EVLOCK_VERSION_SIZE];
};

/* INFO server. */
struct info_server {
    char run_id[ID_SIZE];   /* the process; "": not said */
    int64_t uptime;         /* of the process, in whole seconds, maybe one too many; -1: not said */
    unsigned redis;         /* the version that it says it is like: a hundred times the major one, and the minor */
    unsigned valkey;        /* the same of Valkey; 0: not said */
    bool renews_many;       /* it is new enough */
    bool clusters;          /* it belongs to a cluster */
    struct trouble refusal; /* why it keeps no locks; EVLOCK_OK: it does */
    struct info_product product;
};

void evl_info_server(const char *text, struct info_server *ret);

/* The same: whether it is a Sentinel. */
bool evl_info_is_sentinel(const char *text);

/* INFO replication. */
struct info_data {
    char replid[ID_SIZE];   /* which history the data have; "": not said */
    bool inherited;         /* it may not have begun here: it was taken over */
    bool bare;              /* it has replicas, and takes writes without them */
    struct trouble refusal; /* as above */
};

void evl_info_data(const char *text, struct info_data *ret);

/* Of a policy of eviction. */
#define POLICY_SIZE 32

/* INFO memory: whether keys with an expiry may be evicted when the memory is full, by which policy. */
bool evl_info_evicts(const char *text, char ret_policy[POLICY_SIZE]);

/* INFO persistence. */
enum evlock_persistence evl_info_persistence(const char *text);

/* Of a number of shards. */
#define SHARDS_SIZE 8

/* CLUSTER INFO: whether this node has all slots. If not, how many shards there are; "" while the cluster is down, which
 * does not know. */
bool evl_info_is_whole(const char *text, char ret_shards[SHARDS_SIZE]);

/* CLIENT INFO: the connection's number on the server, and its age in whole seconds; -1: not said. */
void evl_info_connection(const char *text, int64_t *ret_id, int64_t *ret_age);

#endif

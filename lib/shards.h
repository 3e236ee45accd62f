/*
 * What a cluster says of itself: the text of CLUSTER NODES as a table of its members and of who owns which slot, and
 * the errors that send a command elsewhere. A table owns a copy of its text. Any text is taken or refused, and nothing
 * in it is trusted further than that; of two tables the greater epoch wins. Nothing here knows a connection.
 */
#ifndef EVL_SHARDS_H
#define EVL_SHARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "hash_tag.h"
#include "status.h"

/* More is no cluster. */
#define SHARDS_MEMBERS_MAX 2048

/* In place of a member. */
#define SHARDS_NONE UINT16_MAX

#define SHARDS_MARK_SIZE 32 /* bytes of a mark's key, with the zero at its end */

/* One server of the cluster. Its strings lie in the table's text. */
struct member {
    struct bytes id;
    struct bytes address; /* as it is announced; empty: that of who said so */
    struct bytes name;    /* a host name beside that; empty: none is announced */
    uint16_t port;        /* 0: it cannot be reached */
    uint16_t master;      /* whose replica it is, another's, or SHARDS_NONE */
    uint16_t place;       /* for the table's user */
    bool is_master;
    bool failing; /* the others have agreed that it is away */
    bool myself;  /* it is who said so */
    bool owns;    /* some slot is its */
    uint64_t epoch;
};

struct shards {
    char *text; /* NULL: there is no table */
    struct member *members;
    unsigned count;
    uint16_t owners[HASH_TAG_SLOTS]; /* SHARDS_NONE: nobody's */
};

/* Reads what CLUSTER NODES answered. `ret` is to be freed if this is EVLOCK_OK; else it is EVLOCK_EPROTOCOL or
 * EVLOCK_ENOMEM. */
struct trouble evl_shards_read(struct shards *ret, const char *text, size_t len);

/* A table is said after the one that is known: what in it is older than that is mended by it. The known one stays. */
void evl_shards_mend(struct shards *said, const struct shards *known);

/* The member with this id, or SHARDS_NONE. */
uint16_t evl_shards_find(const struct shards *shards, struct bytes id);

/* The member that is announced at this host, by address or name, and port; or SHARDS_NONE. An empty host is that of
 * `speaker`, of whose members those without an address of their own are. */
uint16_t evl_shards_find_at(const struct shards *shards, struct bytes host, uint16_t port, const char *speaker);

/* A slot is another member's from here on. */
void evl_shards_give(struct shards *shards, unsigned slot, uint16_t member);

/* Writes a key that is in a slot of this member, for the mark of its history: of "evlock:history:{NUMBER}", the one
 * with the least number, or, for `nth` above 0, with one of the next. False: it has no such slot. */
bool evl_shards_mark(const struct shards *shards, uint16_t member, unsigned nth, char ret[SHARDS_MARK_SIZE]);

void evl_shards_free(struct shards *shards);

/* An error that says where else to ask. Its host lies in the error's text, and is empty if it is that of who said so.
 */
struct redirect {
    bool ask; /* this once; else from now on */
    uint16_t slot;
    uint16_t port;
    struct bytes host;
};

/* False: the error is no such, or makes no sense. */
bool evl_shards_redirect(struct redirect *ret, const char *error);

#endif

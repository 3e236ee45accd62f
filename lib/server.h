/*
 * A server as one login finds it: which process answers, what history its data have, what it can do and what it lacks.
 * Pure: it is told what the server said, and when. It asks nothing and judges nothing. A new login begins with a new
 * one, so nothing is said by the server of before.
 */
#ifndef EVL_SERVER_H
#define EVL_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "drift.h"
#include "info.h"
#include "native.h"

/* Times are the turn's, in microseconds. */
struct server {
    int64_t id;                  /* the connection's number on it; 0: unknown */
    char run_id[ID_SIZE];        /* the process; "": unknown */
    char replid[ID_SIZE];        /* the history of its data, which a promoted replica changes; "": unknown */
    struct info_product product; /* what it is, as far as it says */
    enum evlock_persistence persistence;
    int64_t started;          /* when the process began, at the latest; 0: unknown */
    bool inherited;           /* its data may have been another server's, since its process began */
    bool bare;                /* it has replicas, and goes on taking writes when none of them gets these */
    int64_t reigned_since;    /* when the first login of all saw this history, at the latest; 0: it is not known */
    unsigned marks_refused;   /* so many of its marks could not be read there */
    int64_t confirmed_at;     /* that history is known to be the server's since, by what was asked then; 0: not anew */
    int64_t asked_history_at; /* it is being asked for since then; 0: it is not */
    struct native native;     /* its own commands in place of scripts */
    bool renews_many;         /* it is new enough, and has not refused it */
    bool renews_by_tag;       /* of many, only those that have one hash tag: it keeps others apart */
    bool shared;              /* it sees one connection where others are as well: `id` is 0 */
    bool spells;              /* scripts are sent whole, as they are not there */
    bool lacks_evalsha;       /* it has no such command, or not for this user */
    struct clock_reading clock; /* of one that does not let scripts read it: the newest; 0: none yet */
    int64_t asked_clock_at;
    bool reading;          /* it is being asked for */
    bool hides_clock;      /* it was refused */
    uint32_t missing;      /* what it lacks, as far as it is known: enum evlock_missing */
    char load_error[128];  /* why the scripts could not be loaded, or "" */
    char clock_error[128]; /* why a script could not read the clock, or "" */
};

/* Nothing is known of it. */
void evl_server_reset(struct server *server);

/* What INFO server says. */
void evl_server_learn(struct server *server, const struct info_server *info, int64_t now);

/* What INFO replication says. */
void evl_server_learn_data(struct server *server, const struct info_data *info);

/* For how long its data have had their history, by its own clock, in microseconds. */
void evl_server_learn_age(struct server *server, int64_t age, int64_t now);

/* What it says of the connection, `passed` microseconds after that began: its number and its age in whole seconds, each
 * -1 if it is not said. Whether that is somebody else's connection. */
bool evl_server_sees_another(const struct server *server, int64_t id, int64_t age, int64_t passed);

/* Something in between has others' commands sent on the connection that it sees: what ends or hushes that would end and
 * hush theirs, and what was sent last may still wait in between. */
void evl_server_share(struct server *server);

/* Its clock at a moment here, once it has been read: from the answer on it went on as the clock here did. So it is not
 * ahead of the server's by more than the two went apart since. */
int64_t evl_server_clock(const struct server *server, int64_t now);

/* Whether it is the process of before. */
bool evl_server_is_same(const struct server *server, const struct server *before);

/* Whether it is another one; both are false if either is unknown. */
bool evl_server_is_other(const struct server *server, const struct server *before);

/* Whether its data may have another history than before. */
bool evl_server_has_other_data(const struct server *server, const struct server *before);

#endif

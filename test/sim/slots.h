/*
 * A simulated server as a member of a cluster (Redis 7.0): what it knows of who has which slot, and the slots that are
 * on their way from it or to it. Each server has a view of its own, which may be late; what a command finds follows
 * from that. It owns the view. When slots move and who hears of it when is decided by its user.
 */
#ifndef EVLOCK_SIM_SLOTS_H
#define EVLOCK_SIM_SLOTS_H

#include "server.h"

enum { SLOTS = 16384, SLOTS_MEMBERS = 4, SLOTS_PORT = 7000 };

/* Becomes this member of a cluster of so many, the first half of which have as many slots each, and the others of which
 * are their replicas, in that order. Each is at the port that comes so far behind SLOTS_PORT. */
void sim_slots_join(sim_server *server, unsigned self, unsigned count);
unsigned sim_slots_of(const char *key, size_t len);

/* --- What is done to slots; each as a command of the same name ---------------------------------------------------- */

/* CLUSTER SETSLOT … IMPORTING, MIGRATING, STABLE, NODE. */
void sim_slots_import(sim_server *server, unsigned slot, unsigned from);
void sim_slots_migrate(sim_server *server, unsigned slot, unsigned to);
void sim_slots_settle(sim_server *server, unsigned slot);
void sim_slots_give(sim_server *server, unsigned slot, unsigned to);
/* MIGRATE of one key: the ttl that it has is counted anew by the other server's clock, so much later. What is there
 * with that name is replaced. */
void sim_slots_carry(sim_server *from, sim_server *to, const char *key, size_t len, int64_t later);
/* The nth key of the slot, in any order, ended by a zero; NULL: there are no more. */
const char *sim_slots_key(sim_server *server, unsigned slot, unsigned nth, size_t *len);
/* CLUSTER FAILOVER: a replica, which has all its master's data, takes its slots; the master is its replica at once. */
void sim_slots_take_over(sim_server *server, sim_server *master);
/* It hears what another says of itself. */
void sim_slots_hear(sim_server *server, const sim_server *other);

/* --- Looks -------------------------------------------------------------------------------------------------------- */

/* Whose it is, as the server has it, and by which epoch. */
unsigned sim_slots_owner(const sim_server *server, unsigned slot);
uint64_t sim_slots_epoch(const sim_server *server);

#endif

/*
 * Tickets: how a grant that the server publishes finds the tenure that waits for it. A ticket says its place in a table
 * and random digits that nobody can guess. The table, and the name of the channel on which grants are heard, are owned
 * here; the texts of tickets lie with their holders.
 */
#ifndef EVL_TICKETS_H
#define EVL_TICKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"
#include "token.h"

struct tenure;

#define CHANNEL_PREFIX "evlock:"

/* Of the text, with its NUL: it has no blanks. */
#define TICKET_SIZE 28

/* A place in the table: a holder's, or free and in a list of such. */
struct ticket_place {
    struct tenure *holder;
    const char *text;
    uint32_t next_free;
};

/* Zeroed at first. */
struct tickets {
    struct ticket_place *places;
    uint32_t size;
    uint32_t first_free;                                   /* `size`: none is */
    char channel[sizeof(CHANNEL_PREFIX) + EVL_TOKEN_TEXT]; /* "": none yet */
};

/* Names the channel; false: the system refuses random bytes. */
bool evl_tickets_open(struct tickets *tickets, struct entropy *entropy);

/* Writes a ticket for a holder, which must have it withdrawn. It asks for so many fences besides, as grant.lua reads
 * it. EVLOCK_OK, EVLOCK_ENOMEM or EVLOCK_ESYSTEM. */
struct trouble evl_tickets_draw(struct tickets *tickets, struct entropy *entropy, struct tenure *holder, uint16_t spare,
                                char text[TICKET_SIZE]);

/* The ticket finds nobody from here on. To withdraw it twice is allowed. */
void evl_tickets_withdraw(struct tickets *tickets, const struct tenure *holder, const char text[TICKET_SIZE]);

/* The number of a ticket: no two that are drawn have the same, and none comes up to the size of the table. */
uint32_t evl_tickets_number(const char text[TICKET_SIZE]);

/* Who has the ticket with which `text` begins, or NULL; `*ret_rest` is what stands behind it. */
struct tenure *evl_tickets_find(const struct tickets *tickets, const char *text, const char **ret_rest);

/* Frees the table. */
void evl_tickets_free(struct tickets *tickets);

#endif

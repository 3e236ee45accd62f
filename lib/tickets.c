/* Tickets; see tickets.h. */
#include "tickets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "memory.h"
#include "status.h"

bool evl_tickets_open(struct tickets *tickets, struct entropy *entropy) {
    char random[EVL_TOKEN_TEXT];

    if (!evl_token_generate(entropy, random))
        return false;
    memcpy(tickets->channel, CHANNEL_PREFIX, sizeof(CHANNEL_PREFIX) - 1);
    memcpy(tickets->channel + sizeof(CHANNEL_PREFIX) - 1, random, sizeof(random));
    return true;
}

static bool tickets_grow(struct tickets *tickets) {
    uint32_t size = tickets->size ? 2 * tickets->size : 16;
    struct ticket_place *places = evl_alloc(size * sizeof(*places));

    if (!places)
        return false;
    if (tickets->size)
        memcpy(places, tickets->places, tickets->size * sizeof(*places));
    for (uint32_t i = tickets->size; i < size; i++)
        places[i].next_free = i + 1;
    evl_free(tickets->places);
    tickets->places = places;
    tickets->size = size;
    return true;
}

struct trouble evl_tickets_draw(struct tickets *tickets, struct entropy *entropy, struct tenure *holder, uint16_t spare,
                                char text[TICKET_SIZE]) {
    char random[EVL_TOKEN_TEXT];
    uint32_t at;
    int len;

    if (!evl_token_generate(entropy, random))
        return (struct trouble){EVLOCK_ESYSTEM, "the system refuses random bytes for a ticket"};
    if (tickets->first_free == tickets->size && !tickets_grow(tickets))
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a place in the queue"};
    at = tickets->first_free;
    assert(at < tickets->size && !tickets->places[at].holder);
    tickets->first_free = tickets->places[at].next_free;
    tickets->places[at].holder = holder;
    tickets->places[at].text = text;
    len = snprintf(text, TICKET_SIZE, "%" PRIx32 "-%.12s", at, random + EVL_TOKEN_TEXT - 12);
    if (spare)
        snprintf(text + len, (size_t)(TICKET_SIZE - len), "+%u", (unsigned)spare);
    return evl_no_trouble;
}

uint32_t evl_tickets_number(const char text[TICKET_SIZE]) {
    return (uint32_t)strtoul(text, NULL, 16);
}

void evl_tickets_withdraw(struct tickets *tickets, const struct tenure *holder, const char text[TICKET_SIZE]) {
    uint32_t at = evl_tickets_number(text);

    assert(at < tickets->size);
    if (tickets->places[at].holder != holder)
        return;
    tickets->places[at].holder = NULL;
    tickets->places[at].next_free = tickets->first_free;
    tickets->first_free = at;
}

struct tenure *evl_tickets_find(const struct tickets *tickets, const char *text, const char **ret_rest) {
    unsigned long at = strtoul(text, NULL, 16);
    const struct ticket_place *place = at < tickets->size ? &tickets->places[at] : NULL;
    size_t len;

    if (!place || !place->holder)
        return NULL;
    len = strlen(place->text);
    if (strncmp(text, place->text, len) != 0)
        return NULL;
    *ret_rest = text + len;
    return place->holder;
}

void evl_tickets_free(struct tickets *tickets) {
    evl_free(tickets->places);
}

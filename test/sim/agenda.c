/* The agenda, a binary heap; see agenda.h. */
#include "agenda.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool earlier(const struct event *a, const struct event *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct agenda *agenda, size_t place, struct event *event) {
    agenda->heap[place] = event;
    event->place = place + 1;
}

/* Moves the hole at `place` to where `event` may stand, up or down, and puts it there. */
static void settle(struct agenda *agenda, size_t place, struct event *event) {
    while (place > 0 && earlier(event, agenda->heap[(place - 1) / 2])) {
        put(agenda, place, agenda->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (size_t child; (child = 2 * place + 1) < agenda->count; place = child) {
        if (child + 1 < agenda->count && earlier(agenda->heap[child + 1], agenda->heap[child]))
            child++;
        if (!earlier(agenda->heap[child], event))
            break;
        put(agenda, place, agenda->heap[child]);
    }
    put(agenda, place, event);
}

static void take_out(struct agenda *agenda, struct event *event) {
    size_t place = event->place - 1;

    event->place = 0;
    if (place < --agenda->count)
        settle(agenda, place, agenda->heap[agenda->count]);
}

void agenda_set(struct agenda *agenda, struct event *event, int64_t at) {
    if (event->place)
        take_out(agenda, event);
    event->at = at;
    if (at == NEVER)
        return;
    if (agenda->count == agenda->room) {
        agenda->room = agenda->room ? agenda->room * 2 : 64;
        agenda->heap = realloc(agenda->heap, agenda->room * sizeof(struct event *));
        if (!agenda->heap)
            abort();
    }
    event->order = agenda->order++;
    agenda->count++;
    settle(agenda, agenda->count - 1, event);
}

struct event *agenda_next(struct agenda *agenda) {
    struct event *event = agenda->count ? agenda->heap[0] : NULL;

    if (event)
        take_out(agenda, event);
    return event;
}

void agenda_clear(struct agenda *agenda) {
    free(agenda->heap);
    memset(agenda, 0, sizeof(*agenda));
}

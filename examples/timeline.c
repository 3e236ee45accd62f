/*
 * The timeline of a lock: an array of turns, sorted when it is checked. It prints only where it is asked to, and
 * decides nothing: what an overlap means is the caller's affair.
 */
#include "timeline.h"

#include <inttypes.h>
#include <stdlib.h>

static int begin_turn(struct timeline *timeline, const struct report *report) {
    if (timeline->count == timeline->room) {
        size_t room = timeline->room ? timeline->room * 2 : 64;
        struct turn *turns = realloc(timeline->turns, room * sizeof *turns);
        if (!turns)
            return -1;
        timeline->turns = turns;
        timeline->room = room;
    }
    timeline->turns[timeline->count++] = (struct turn){.worker = report->worker, .open = true, .asked = report->at};
    return 0;
}

/* The last turn of a worker, or NULL. */
static struct turn *last_turn(const struct timeline *timeline, int worker) {
    for (size_t i = timeline->count; i > 0; i--)
        if (timeline->turns[i - 1].worker == worker)
            return &timeline->turns[i - 1];
    return NULL;
}

/* Ends the turn, if that has not been done. A hold ends at its deadline, however late that is reported. */
static void end_turn(struct turn *turn, int64_t at, bool lost) {
    if (!turn->open)
        return;
    turn->open = false;
    turn->lost = lost && turn->got;
    turn->end = turn->got && turn->deadline < at ? turn->deadline : at;
}

int timeline_add(struct timeline *timeline, const struct report *report) {
    if (report->kind == WAITS)
        return begin_turn(timeline, report);

    struct turn *turn = last_turn(timeline, report->worker);
    if (!turn)
        return 0;
    if (report->kind != DIED)
        turn->deadline = report->deadline;
    switch (report->kind) {
    case HOLDS:
        turn->got = report->at;
        turn->fence = report->fence;
        break;
    case STALLS:
        turn->stalled = report->at;
        break;
    case RELEASES:
    case GIVES_UP:
        end_turn(turn, report->at, false);
        break;
    case LOSES:
    case DIED:
        end_turn(turn, report->at, true);
        break;
    case REFUSED:
        turn->refused = report->at;
        break;
    default:
        break;
    }
    return 0;
}

struct tally timeline_count(const struct timeline *timeline, int worker) {
    struct tally tally = {0};
    for (size_t i = 0; i < timeline->count; i++) {
        const struct turn *turn = &timeline->turns[i];
        if (worker != 0 && turn->worker != worker)
            continue;
        int64_t wait = (turn->got ? turn->got : turn->end) - turn->asked;
        tally.held += turn->got != 0;
        tally.lost += turn->lost;
        tally.in_vain += turn->got == 0;
        if (wait > tally.longest_wait)
            tally.longest_wait = wait;
    }
    return tally;
}

/* Waits in vain come first. */
static int by_got(const void *left, const void *right) {
    const struct turn *a = left, *b = right;
    return (a->got > b->got) - (a->got < b->got);
}

struct findings timeline_check(struct timeline *timeline, FILE *out) {
    struct findings findings = {0};
    const struct turn *last = NULL; /* of all holds that began so far, the one that ends last */

    if (timeline->count > 0)
        qsort(timeline->turns, timeline->count, sizeof *timeline->turns, by_got);
    for (size_t i = 0; i < timeline->count; i++) {
        const struct turn *next = &timeline->turns[i];
        if (!next->got)
            continue;
        if (last && next->got < last->end) {
            findings.overlaps++;
            fprintf(out, "worker-%d got the lock %" PRId64 " us before worker-%d had ended its hold\n", next->worker,
                    last->end - next->got, last->worker);
        } else if (last && next->fence <= last->fence) {
            findings.falls++;
        }
        if (!last || next->end > last->end)
            last = next;
    }
    return findings;
}

void timeline_clear(struct timeline *timeline) {
    free(timeline->turns);
    *timeline = (struct timeline){0};
}

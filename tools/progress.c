/* The line of progress while evlock waits for a lock. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "duration.h"
#include "progress.h"
#include "say.h"

/* A lock that is had at once needs no line. */
enum { PROGRESS_FIRST_MS = 300, PROGRESS_NEXT_MS = 1000 };

static void progress_set_timer(struct progress *progress, int ms) {
    struct timeval span = duration_span(ms);
    event_add(progress->timer, &span);
}

/* A name of another's, which may have anything in it that would confuse a terminal. */
static void progress_print_name(char *text, size_t size, const char *name, size_t length) {
    size_t i = 0;
    for (; i < length && i + 1 < size; i++)
        text[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
    text[i] = '\0';
}

static void progress_on_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    const struct progress *progress = arg;
    char line[400], name[60], holder[92] = "", waited[24], place[64] = "";
    if (!progress->timer)
        return;
    progress_print_name(name, sizeof name, progress->name, strlen(progress->name));
    duration_print(evlock_waited_ms(lock), waited, sizeof waited);
    if (status != EVLOCK_OK) {
        snprintf(line, sizeof line, "evlock: waiting for %s, %s: %s", name, waited, evlock_strerror(status));
        say_progress(line);
        return;
    }
    progress_print_name(holder, sizeof holder, answer->holder, answer->holder_len);
    if (answer->place > 0)
        snprintf(place, sizeof place, ", place %" PRId64 " of %" PRId64, answer->place, answer->waiters);
    snprintf(line, sizeof line, "evlock: waiting for %s, %s%s%s%s", name, waited, place, *holder ? ", held by " : "",
             holder);
    say_progress(line);
}

static void progress_on_timer(evutil_socket_t fd, short what, void *arg) {
    struct progress *progress = arg;
    unsigned asked = EVLOCK_QUERY_HOLDER;
    (void)fd, (void)what;
    if (progress->session->options->url_count == 1)
        asked |= EVLOCK_QUERY_WAITERS | EVLOCK_QUERY_PLACE;
    evlock_query(progress->lock, asked, progress_on_answer, progress);
    progress_set_timer(progress, PROGRESS_NEXT_MS);
}

void progress_begin(struct progress *progress, const struct session *session, evlock *lock, const char *name) {
    *progress = (struct progress){.session = session, .lock = lock, .name = name};
    if (!say_shows_progress())
        return;
    progress->timer = event_new(session->base, -1, 0, progress_on_timer, progress);
    if (progress->timer)
        progress_set_timer(progress, PROGRESS_FIRST_MS);
}

void progress_end(struct progress *progress) {
    session_forget(progress->timer);
    progress->timer = NULL;
    say_progress(NULL);
}

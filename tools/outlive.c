/* A lease that is to outlive evlock. */
#include <string.h>

#include "duration.h"
#include "exits.h"
#include "outlive.h"
#include "say.h"

/* So often it is tried again, in milliseconds. */
enum { OUTLIVE_PAUSE_MS = 10 };

/* While an unanswered command could change the lease, it cannot be left. */
static void outlive_try(struct outlive *outlive) {
    struct timeval soon = duration_span(OUTLIVE_PAUSE_MS);
    char token[EVLOCK_TOKEN_MAX];
    size_t length;
    if (outlive->session->ending)
        return;
    int status = evlock_export(outlive->lock, token, sizeof token, &length);
    explicit_bzero(token, sizeof token);
    if (status == EVLOCK_EALREADY && event_add(outlive->again, &soon) == 0)
        return;
    if (status == EVLOCK_OK && outlive->left)
        outlive->left(outlive->arg);
    if (status == EVLOCK_ELOST || status == EVLOCK_ENOTHELD)
        outlive->exit = say_error(EXIT_LOST, "lost %s: %s", outlive->name, evlock_strerror(status));
    else if (status != EVLOCK_OK)
        outlive->exit = say_status(outlive->name, status);
    session_end(outlive->session, outlive->exit);
}

static void outlive_on_again(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    outlive_try(arg);
}

int outlive_open(struct outlive *outlive, struct session *session) {
    outlive->session = session;
    outlive->again = event_new(session->base, -1, 0, outlive_on_again, outlive);
    return outlive->again ? 0 : say_error(EXIT_TROUBLE, "the system refuses a timer");
}

void outlive(struct outlive *outlive, int exit) {
    outlive->exit = exit;
    outlive_try(outlive);
}

void outlive_close(struct outlive *outlive) {
    session_forget(outlive->again);
}

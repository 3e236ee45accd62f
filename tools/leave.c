/* A lease that is to outlive evlock. */
#include <string.h>

#include "duration.h"
#include "exits.h"
#include "leave.h"
#include "say.h"

/* So often it is tried again, in milliseconds. */
enum { LEAVE_PAUSE_MS = 10 };

/* While an unanswered command could change the lease, it cannot be left. */
static void leave_try(struct leave *leave) {
    struct timeval soon = duration_span(LEAVE_PAUSE_MS);
    char token[EVLOCK_TOKEN_MAX];
    size_t length;
    if (leave->session->ending)
        return;
    int status = evlock_export(leave->lock, token, sizeof token, &length);
    explicit_bzero(token, sizeof token);
    if (status == EVLOCK_EALREADY && event_add(leave->again, &soon) == 0)
        return;
    if (status == EVLOCK_OK && leave->left)
        leave->left(leave->arg);
    if (status == EVLOCK_ELOST || status == EVLOCK_ENOTHELD)
        leave->exit = say_error(EXIT_LOST, "lost %s: %s", leave->name, evlock_strerror(status));
    else if (status != EVLOCK_OK)
        leave->exit = say_status(leave->name, status);
    session_end(leave->session, leave->exit);
}

static void leave_on_again(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    leave_try(arg);
}

int leave_open(struct leave *leave, struct session *session) {
    leave->session = session;
    leave->again = event_new(session->base, -1, 0, leave_on_again, leave);
    return leave->again ? 0 : say_error(EXIT_TROUBLE, "the system refuses a timer");
}

void leave(struct leave *leave, int exit) {
    leave->exit = exit;
    leave_try(leave);
}

void leave_close(struct leave *leave) {
    session_forget(leave->again);
}

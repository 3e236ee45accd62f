/* What the public headers share: how a function is declared, and the name of a type. Each of them includes this one.
 * Programs need nothing of it. */
#ifndef EVLOCK_EXPORT_H
#define EVLOCK_EXPORT_H

#if defined(__GNUC__)
#define EVLOCK_EXPORT __attribute__((visibility("default")))
#else
#define EVLOCK_EXPORT
#endif

/** An event loop, as evlock_client_new() takes it; see <evlock/loop.h>. */
typedef struct evlock_loop evlock_loop;

#endif

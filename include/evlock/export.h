/* What the public headers share: how a function is declared, and the name of a type. Each of them includes this one.
 * Programs need nothing of it. A generator of bindings may define EVLOCK_EXPORT as nothing: the rest is plain C11. */
#ifndef EVLOCK_EXPORT_H
#define EVLOCK_EXPORT_H

#ifndef EVLOCK_EXPORT
#if defined(__GNUC__)
#define EVLOCK_EXPORT __attribute__((visibility("default")))
#else
#define EVLOCK_EXPORT
#endif
#endif

/** An event loop, as evlock_client_new() takes it; see <evlock/loop.h>. */
typedef struct evlock_loop evlock_loop;

#endif

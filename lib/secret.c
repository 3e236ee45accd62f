/* Secrets; see secret.h. */
#include "secret.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The advice may be unknown to the system: then they are as ordinary memory. */
bool evl_secret_make(struct secret *ret, size_t room) {
    void *pages = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED)
        return false;
    (void)madvise(pages, room, MADV_DONTDUMP);
    (void)madvise(pages, room, MADV_WIPEONFORK);
    *ret = (struct secret){pages, 0, room};
    return true;
}

bool evl_secret_read(struct secret *secret, int fd) {
    ssize_t count;

    do {
        count = read(fd, secret->bytes + secret->len, secret->room - secret->len);
        secret->len += count > 0 ? (size_t)count : 0;
    } while ((count > 0 && secret->len < secret->room) || (count < 0 && errno == EINTR));
    return count >= 0;
}

void evl_secret_wipe(struct secret *secret) {
    if (!secret->bytes)
        return;
    explicit_bzero(secret->bytes, secret->room);
    (void)munmap(secret->bytes, secret->room);
    *secret = (struct secret){0};
}

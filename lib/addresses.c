/* Addresses; see addresses.h. */
#include "addresses.h"

#include <string.h>

#include "memory.h"

bool evl_addresses_keep(struct addresses *addresses, const char *const *texts, size_t count) {
    evl_addresses_free(addresses);
    addresses->texts = evl_alloc(count * sizeof(*addresses->texts));
    for (; addresses->texts && addresses->count < count; addresses->count++) {
        const char *text = texts[addresses->count];

        if (!(addresses->texts[addresses->count] = evl_dup(text, strlen(text))))
            break;
    }
    if (addresses->texts && addresses->count == count)
        return true;
    evl_addresses_free(addresses);
    return false;
}

const char *evl_addresses_take(struct addresses *addresses) {
    size_t next = addresses->next++;

    return addresses->texts ? addresses->texts[next] : NULL;
}

bool evl_addresses_remain(const struct addresses *addresses) {
    return addresses->next < addresses->count;
}

int64_t evl_addresses_share(const struct addresses *addresses, int64_t time) {
    return time / (int64_t)(addresses->count ? addresses->count : 1);
}

void evl_addresses_free(struct addresses *addresses) {
    for (size_t i = 0; i < addresses->count; i++)
        evl_free(addresses->texts[i]);
    evl_free(addresses->texts);
    *addresses = (struct addresses){0};
}

/* Tables of clusters; see shards.h. */
#include "shards.h"

#include <stdio.h>
#include <string.h>

#include "memory.h"

#define ID_MIN 1
#define ID_MAX 64
#define HOST_MAX 253

/* Each slot is that of some lesser number. */
#define MARK_NUMBERS 262144

/* --- Words of a text ---------------------------------------------------------------------------------------------- */

/* What is left to be read, on one line. */
struct reader {
    const char *at;
    const char *end;
};

/* Takes what stands before the separator, and the separator; all that is left, where there is none. */
static struct bytes shards_take(struct reader *reader, char separator) {
    const char *begin = reader->at;
    const char *found = memchr(begin, separator, (size_t)(reader->end - begin));

    reader->at = found ? found + 1 : reader->end;
    return (struct bytes){begin, (size_t)((found ? found : reader->end) - begin)};
}

static bool shards_is(struct bytes word, const char *text) {
    return evl_same_bytes(word, (struct bytes){text, strlen(text)});
}

/* A number of digits alone, of `most` at most. */
static bool shards_number(struct bytes word, uint64_t most, uint64_t *ret) {
    const char *digits = word.data;
    uint64_t number = 0;

    for (size_t i = 0; i < word.len; i++) {
        unsigned digit = (unsigned char)digits[i] - (unsigned)'0';
        if (digit > 9 || number > (most - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret = number;
    return word.len > 0;
}

/* Takes what a server may be called by: no blanks, and nothing that means something else in a URL. The question mark
 * stands for nothing. */
static bool shards_host(struct bytes word, struct bytes *ret) {
    const char *text = word.data;

    *ret = shards_is(word, "?") ? (struct bytes){text, 0} : word;
    for (size_t i = 0; i < ret->len; i++)
        if (text[i] <= ' ' || text[i] > '~' || strchr("/?#@[]\"\\,", text[i]))
            return false;
    return ret->len <= HOST_MAX;
}

/* "HOST:PORT", where the host may be an IPv6 address. */
static bool shards_address(struct bytes word, struct bytes *ret_host, uint16_t *ret_port) {
    const char *text = word.data;
    size_t colon = word.len;
    uint64_t port;

    while (colon > 0 && text[colon - 1] != ':')
        colon--;
    if (colon == 0 || !shards_number((struct bytes){text + colon, word.len - colon}, UINT16_MAX, &port))
        return false;
    *ret_port = (uint16_t)port;
    return shards_host((struct bytes){text, colon - 1}, ret_host);
}

/* --- A line of the table ------------------------------------------------------------------------------------------ */

/* "HOST:PORT@BUSPORT,NAME,WORD=VALUE": all but the first is newer than some servers. */
static bool shards_read_address(struct bytes field, struct member *member) {
    struct reader parts = {field.data, (const char *)field.data + field.len};
    struct bytes where = shards_take(&parts, ',');
    struct reader ports = {where.data, (const char *)where.data + where.len};
    struct bytes name = shards_take(&parts, ',');

    if (!shards_address(shards_take(&ports, '@'), &member->address, &member->port))
        return false;
    if (memchr(name.data, '=', name.len))
        name.len = 0;
    return shards_host(name, &member->name);
}

static void shards_read_flags(struct bytes field, struct member *member) {
    struct reader flags = {field.data, (const char *)field.data + field.len};

    while (flags.at < flags.end) {
        struct bytes flag = shards_take(&flags, ',');
        member->is_master |= shards_is(flag, "master");
        member->failing |= shards_is(flag, "fail");
        member->myself |= shards_is(flag, "myself");
        if (shards_is(flag, "noaddr") || shards_is(flag, "handshake"))
            member->port = 0;
    }
}

/* Of two members that say that a slot is theirs, the greater epoch wins. */
static void shards_claim(struct shards *shards, unsigned slot, uint16_t claims) {
    uint16_t owner = shards->owners[slot];

    if (owner == SHARDS_NONE || shards->members[owner].epoch < shards->members[claims].epoch)
        shards->owners[slot] = claims;
}

/* "FIRST-LAST", "SLOT", or a note in brackets about one that is on its way: that one is its owner's until it is not. */
static bool shards_read_slots(struct shards *shards, struct bytes word, uint16_t claims) {
    struct reader ends = {word.data, (const char *)word.data + word.len};
    uint64_t first, last;

    if (word.len > 0 && *(const char *)word.data == '[')
        return true;
    if (!shards_number(shards_take(&ends, '-'), HASH_TAG_SLOTS - 1, &first))
        return false;
    last = first;
    if (ends.at < ends.end &&
        !shards_number((struct bytes){ends.at, (size_t)(ends.end - ends.at)}, HASH_TAG_SLOTS - 1, &last))
        return false;
    for (uint64_t slot = first; slot <= last; slot++)
        shards_claim(shards, (unsigned)slot, claims);
    return first <= last;
}

/* "ID ADDRESS FLAGS MASTER PING PONG EPOCH LINK SLOT…". Whose replica it is can be looked up when all are there. */
static bool shards_read_line(struct shards *shards, struct reader line, struct bytes *ret_master) {
    uint16_t index = (uint16_t)shards->count;
    struct member *member = &shards->members[index];

    *member = (struct member){.master = SHARDS_NONE};
    member->id = shards_take(&line, ' ');
    if (member->id.len < ID_MIN || member->id.len > ID_MAX || !shards_read_address(shards_take(&line, ' '), member))
        return false;
    shards_read_flags(shards_take(&line, ' '), member);
    *ret_master = shards_take(&line, ' ');
    (void)shards_take(&line, ' ');
    (void)shards_take(&line, ' ');
    if (!shards_number(shards_take(&line, ' '), UINT64_MAX, &member->epoch))
        return false;
    (void)shards_take(&line, ' ');
    shards->count++;
    while (line.at < line.end)
        if (!shards_read_slots(shards, shards_take(&line, ' '), index))
            return false;
    return true;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static void shards_note_owners(struct shards *shards) {
    for (unsigned i = 0; i < shards->count; i++)
        shards->members[i].owns = false;
    for (unsigned slot = 0; slot < HASH_TAG_SLOTS; slot++)
        if (shards->owners[slot] != SHARDS_NONE)
            shards->members[shards->owners[slot]].owns = true;
}

static bool shards_read_lines(struct shards *shards, struct reader text, struct bytes *masters) {
    while (text.at < text.end) {
        struct bytes line = shards_take(&text, '\n');
        const char *begin = line.data;
        if (line.len > 0 && begin[line.len - 1] == '\r')
            line.len--;
        if (line.len == 0)
            continue;
        if (shards->count == SHARDS_MEMBERS_MAX ||
            !shards_read_line(shards, (struct reader){begin, begin + line.len}, &masters[shards->count]))
            return false;
    }
    for (unsigned i = 0; i < shards->count; i++) {
        uint16_t master = shards->members[i].is_master ? SHARDS_NONE : evl_shards_find(shards, masters[i]);
        shards->members[i].master = master == i ? SHARDS_NONE : master;
    }
    return shards->count > 0;
}

static size_t shards_count_lines(const char *text, size_t len) {
    size_t count = 1;

    for (size_t i = 0; i < len; i++)
        count += text[i] == '\n';
    return count < SHARDS_MEMBERS_MAX ? count : SHARDS_MEMBERS_MAX;
}

struct trouble evl_shards_read(struct shards *ret, const char *text, size_t len) {
    static const char nonsense[] = "CLUSTER NODES is answered by what is no table of a cluster";
    size_t lines = shards_count_lines(text, len);
    struct bytes *masters = evl_alloc(lines * sizeof(*masters));
    bool fits = false, room;

    memset(ret, 0, sizeof(*ret));
    memset(ret->owners, 0xFF, sizeof(ret->owners));
    ret->text = evl_dup(text, len);
    ret->members = evl_alloc(lines * sizeof(*ret->members));
    room = masters && ret->text && ret->members;
    if (room)
        fits = shards_read_lines(ret, (struct reader){ret->text, ret->text + len}, masters);
    evl_free(masters);
    if (fits)
        shards_note_owners(ret);
    else
        evl_shards_free(ret);
    if (!room)
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a cluster's table"};
    return fits ? evl_no_trouble : (struct trouble){EVLOCK_EPROTOCOL, nonsense};
}

void evl_shards_free(struct shards *shards) {
    evl_free(shards->text);
    evl_free(shards->members);
    shards->text = NULL;
    shards->members = NULL;
    shards->count = 0;
}

uint16_t evl_shards_find(const struct shards *shards, struct bytes id) {
    for (unsigned i = 0; i < shards->count; i++)
        if (evl_same_bytes(shards->members[i].id, id))
            return (uint16_t)i;
    return SHARDS_NONE;
}

uint16_t evl_shards_find_at(const struct shards *shards, struct bytes host, uint16_t port, const char *speaker) {
    struct bytes here = {speaker, strlen(speaker)};
    struct bytes sought = host.len ? host : here;

    for (unsigned i = 0; i < shards->count; i++) {
        const struct member *member = &shards->members[i];
        struct bytes address = member->address.len ? member->address : here;
        if (member->port == port && port != 0 &&
            (evl_same_bytes(address, sought) || (member->name.len && evl_same_bytes(member->name, sought))))
            return (uint16_t)i;
    }
    return SHARDS_NONE;
}

void evl_shards_give(struct shards *shards, unsigned slot, uint16_t member) {
    shards->owners[slot] = member;
    shards->members[member].owns = true;
}

bool evl_shards_mark(const struct shards *shards, uint16_t member, unsigned nth, char ret[SHARDS_MARK_SIZE]) {
    unsigned found = 0;

    for (unsigned number = 0; shards->members[member].owns && number < MARK_NUMBERS; number++) {
        int len = snprintf(ret, SHARDS_MARK_SIZE, "evlock:history:{%u}", number);
        unsigned slot = evl_hash_tag_slot((struct bytes){ret, (size_t)len});
        if (shards->owners[slot] == member && found++ == nth)
            return true;
    }
    return false;
}

/* --- Of two tables ------------------------------------------------------------------------------------------------ */

/* Each member is what the greater epoch says of it. */
static void shards_mend_member(struct member *member, struct shards *said, const struct shards *known) {
    uint16_t found = evl_shards_find(known, member->id);
    const struct member *before = found == SHARDS_NONE ? NULL : &known->members[found];

    if (!before || before->epoch <= member->epoch)
        return;
    member->epoch = before->epoch;
    member->is_master = before->is_master;
    member->master = SHARDS_NONE;
    if (before->master != SHARDS_NONE)
        member->master = evl_shards_find(said, known->members[before->master].id);
    if (member->master != SHARDS_NONE && &said->members[member->master] == member)
        member->master = SHARDS_NONE;
}

/* Where the table that is said knows less of a slot's owner than is known, and gives the slot to one of a lesser epoch,
 * it is the older one. `same` is that owner in it. */
static bool shards_is_older(const struct shards *said, uint16_t owner, const struct member *before, uint64_t epoch) {
    return epoch < before->epoch && (owner == SHARDS_NONE || said->members[owner].epoch < before->epoch);
}

void evl_shards_mend(struct shards *said, const struct shards *known) {
    uint64_t epochs[SHARDS_MEMBERS_MAX]; /* of the known members, as they were said */
    uint16_t same[SHARDS_MEMBERS_MAX];   /* where these are in what was said */

    for (unsigned i = 0; i < known->count; i++) {
        same[i] = evl_shards_find(said, known->members[i].id);
        epochs[i] = same[i] == SHARDS_NONE ? UINT64_MAX : said->members[same[i]].epoch;
    }
    for (unsigned slot = 0; slot < HASH_TAG_SLOTS; slot++) {
        uint16_t owner = known->owners[slot];
        if (owner != SHARDS_NONE && same[owner] != said->owners[slot] &&
            shards_is_older(said, said->owners[slot], &known->members[owner], epochs[owner]))
            said->owners[slot] = same[owner];
    }
    for (unsigned i = 0; i < said->count; i++)
        shards_mend_member(&said->members[i], said, known);
    shards_note_owners(said);
}

/* --- Redirections ------------------------------------------------------------------------------------------------- */

bool evl_shards_redirect(struct redirect *ret, const char *error) {
    struct reader words = {error, error + strlen(error)};
    struct bytes kind = shards_take(&words, ' ');
    struct bytes slot_word = shards_take(&words, ' ');
    uint64_t slot;

    ret->ask = shards_is(kind, "ASK");
    if (!ret->ask && !shards_is(kind, "MOVED"))
        return false;
    if (!shards_number(slot_word, HASH_TAG_SLOTS - 1, &slot))
        return false;
    ret->slot = (uint16_t)slot;
    return shards_address(shards_take(&words, ' '), &ret->host, &ret->port) && ret->port != 0;
}

/* URLs; see url.h. */
#include "url.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "check.h"
#include "memory.h"

#define DEFAULT_PORT 6379
#define SENTINEL_PORT 26379

/* As much of a host's name as is written of it. */
#define HOST_SHOWN 100

#define SEVERAL "several are written as \"quorum:URL URL URL\", with spaces"
#define SCHEMES                                                                                                        \
    "redis://, rediss:// (valkey://, valkeys://) or unix://; or redis+sentinel://, redis+cluster:// or these with "    \
    "rediss+"
#define BRACKETS "an IPv6 address must stand in []"

/* A stretch of the URL's text, not yet decoded. */
struct part {
    const char *at;
    const char *end;
};

static bool url_take_prefix(struct part *rest, const char *prefix) {
    size_t len = strlen(prefix);
    if ((size_t)(rest->end - rest->at) < len || strncasecmp(rest->at, prefix, len) != 0)
        return false;
    rest->at += len;
    return true;
}

/* Cuts off what comes before the first of `stops`, which stays at the head of the rest. */
static struct part url_take_until(struct part *rest, const char *stops) {
    struct part taken = {rest->at, rest->at};
    while (taken.end < rest->end && !strchr(stops, *taken.end))
        taken.end++;
    rest->at = taken.end;
    return taken;
}

static int url_hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | ' ');
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct trouble url_malformed(const char *words) {
    return (struct trouble){EVLOCK_EURL, words};
}

/* Decodes `part` into a string of its own. `what` names it in the error text. */
static struct trouble url_decode(char **ret_text, struct part part, const char *what, struct words *words) {
    size_t len = (size_t)(part.end - part.at);
    char *text = evl_dup(part.at, len);
    if (!text)
        return (struct trouble){EVLOCK_ENOMEM, "out of memory"};
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = url_hex_digit(from[1]);
        int low = high < 0 ? -1 : url_hex_digit(from[2]);
        if (low < 0 || high + low == 0) {
            explicit_bzero(text, len);
            evl_free(text);
            return evl_trouble(words, EVLOCK_EURL,
                               "in the %s, '%%' is not followed by two hexadecimal digits other than 00", what);
        }
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    explicit_bzero(to, (size_t)(text + len - to)); /* what decoding left over may be of a password */
    *ret_text = text;
    return evl_no_trouble;
}

/* Reads a decimal number of `least` to `most`. */
static struct trouble url_parse_number(int *ret_number, struct part part, const char *what, int least, int most,
                                       struct words *words) {
    char *text;
    struct trouble trouble = url_decode(&text, part, what, words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    int64_t number = 0;
    const char *digit = text;
    while (*digit >= '0' && *digit <= '9' && number <= most)
        number = number * 10 + (*digit++ - '0');
    bool valid = digit != text && *digit == '\0' && number >= least && number <= most;
    evl_free(text);
    if (!valid)
        return evl_trouble(words, EVLOCK_EURL, "the %s must be a number from %d to %d", what, least, most);
    *ret_number = (int)number;
    return evl_no_trouble;
}

/* [user]:password, or nothing. */
static struct trouble url_parse_login(struct url *url, struct part login, struct words *words) {
    struct part user = url_take_until(&login, ":");
    if (login.at == login.end)
        return url_malformed("before the '@' must stand user:password or :password");
    login.at++;
    struct trouble trouble = user.at == user.end ? evl_no_trouble : url_decode(&url->user, user, "user", words);
    return trouble.status == EVLOCK_OK ? url_decode(&url->password, login, "password", words) : trouble;
}

/* A zone ("fe80::1%eth0") belongs to an address as the system's own functions take it. */
static bool url_is_ipv6(const char *host) {
    char address[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    size_t len = strcspn(host, "%");
    if (len >= sizeof address || (host[len] == '%' && host[len + 1] == '\0'))
        return false;
    memcpy(address, host, len);
    address[len] = '\0';
    return inet_pton(AF_INET6, address, &ignored) == 1;
}

static struct trouble url_parse_host(struct url_address *ret, struct part *rest, struct words *words) {
    bool bracketed = url_take_prefix(rest, "[");
    struct part host = url_take_until(rest, bracketed ? "]" : ":");
    if (bracketed && !url_take_prefix(rest, "]"))
        return url_malformed("the '[' before the host is not closed");
    if (host.at == host.end)
        return url_malformed(memmem(rest->at, (size_t)(rest->end - rest->at), "::", 2) ? BRACKETS : "no host");
    struct trouble trouble = url_decode(&ret->host, host, "host", words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (bracketed) {
        ret->literal = url_is_ipv6(ret->host);
        return ret->literal ? evl_no_trouble : url_malformed("what stands in [] must be an IPv6 address");
    }
    struct in_addr ignored;
    ret->literal = inet_pton(AF_INET, ret->host, &ignored) == 1;
    return evl_no_trouble;
}

/* host[:port], which is all that `part` has. What was decoded is in `ret` in any case. */
static struct trouble url_parse_address(struct url_address *ret, struct part part, struct words *words) {
    struct trouble trouble = url_parse_host(ret, &part, words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (!url_take_prefix(&part, ":"))
        return part.at == part.end
                   ? evl_no_trouble
                   : url_malformed("after the host may stand only ':' and a port, or '/' and a database");
    if (memchr(part.at, ':', (size_t)(part.end - part.at)))
        return url_malformed(BRACKETS);
    return url_parse_number(&ret->port, part, "port", 1, 65535, words);
}

/* One more address, which is taken over. False: no memory. */
static bool url_add_address(struct url *url, struct url_address *address) {
    struct url_address *others;
    if (!url->host) {
        url->host = address->host;
        url->port = address->port;
        url->literal = address->literal;
        return true;
    }
    others = evl_alloc((url->other_count + 1) * sizeof(*others));
    if (!others)
        return false;
    if (url->others)
        memcpy(others, url->others, url->other_count * sizeof(*others));
    evl_free(url->others);
    url->others = others;
    others[url->other_count++] = *address;
    return true;
}

/* host[:port], or several of these, with commas between them. */
static struct trouble url_parse_addresses(struct url *url, struct part list, struct words *words) {
    bool one = url->kind == URL_SERVER;
    do {
        struct url_address address = {.port = url->kind == URL_SENTINELS ? SENTINEL_PORT : DEFAULT_PORT};
        struct part part = one ? list : url_take_until(&list, ",");
        if (url->host && evl_url_addresses(url) == EVLOCK_NODES_MAX)
            return url_malformed("there are more addresses than evlock asks");
        struct trouble trouble = url_parse_address(&address, part, words);
        if (trouble.status == EVLOCK_OK && !url_add_address(url, &address))
            trouble = (struct trouble){EVLOCK_ENOMEM, "out of memory"};
        if (trouble.status != EVLOCK_OK) {
            evl_free(address.host);
            return trouble;
        }
    } while (!one && url_take_prefix(&list, ","));
    return evl_no_trouble;
}

/* What stands behind the addresses: [/db], of sentinels /NAME[/db], of a cluster nothing. */
static struct trouble url_parse_path(struct url *url, struct part rest, struct words *words) {
    struct trouble trouble = evl_no_trouble;
    bool slash = url_take_prefix(&rest, "/");
    if (url->kind == URL_SENTINELS) {
        struct part name = url_take_until(&rest, "/?#");
        if (name.at == name.end)
            return url_malformed("behind the sentinels must stand '/' and the name that they know the master by");
        trouble = url_decode(&url->master, name, "master's name", words);
        slash = url_take_prefix(&rest, "/");
    }
    struct part db = url_take_until(&rest, "/?#");
    if (trouble.status == EVLOCK_OK && url->kind == URL_CLUSTER && slash && db.at != db.end)
        trouble = url_malformed("a cluster has one database; nothing may follow its nodes");
    else if (trouble.status == EVLOCK_OK && rest.at != rest.end)
        trouble = url_malformed("nothing may follow the host but ':' and a port, and '/' and a database");
    if (trouble.status != EVLOCK_OK || db.at == db.end)
        return trouble;
    return url_parse_number(&url->db, db, "database", 0, INT_MAX, words);
}

/* [[user]:password@]host[:port][/db], and as url_parse_addresses() and url_parse_path() say. */
static struct trouble url_parse_tcp(struct url *url, struct part rest, struct words *words) {
    struct part authority = url_take_until(&rest, "/?#");
    struct trouble trouble = evl_no_trouble;

    /* The last '@' ends the login: an unescaped one in a password then does no harm. In a list it may be another's. */
    const char *at = memrchr(authority.at, '@', (size_t)(authority.end - authority.at));
    if (at && url->kind != URL_SERVER && memchr(authority.at, '@', (size_t)(at - authority.at)))
        return url_malformed("user and password stand once, before the first host; in them, '@' is written as %40");
    if (at) {
        trouble = url_parse_login(url, (struct part){authority.at, at}, words);
        authority.at = at + 1;
    }
    if (trouble.status == EVLOCK_OK && url->kind == URL_SERVER &&
        memchr(authority.at, ',', (size_t)(authority.end - authority.at)))
        trouble = url_malformed("it names one server; " SEVERAL);
    else if (!at && memchr(rest.at, '@', (size_t)(rest.end - rest.at)))
        trouble = url_malformed("before the '@', '/' is written as %2F, '?' as %3F and '#' as %23");
    if (trouble.status == EVLOCK_OK)
        trouble = url_parse_addresses(url, authority, words);
    return trouble.status == EVLOCK_OK ? url_parse_path(url, rest, words) : trouble;
}

/* /path[?db=N] */
static struct trouble url_parse_unix(struct url *url, struct part rest, struct words *words) {
    if (rest.at == rest.end || *rest.at != '/')
        return url_malformed("the socket's path must be absolute, as in unix:///path");
    struct trouble trouble = url_decode(&url->path, url_take_until(&rest, "?#"), "path", words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    if (strlen(url->path) > most)
        return evl_trouble(words, EVLOCK_EPATH, "the socket's path is %zu bytes long; the system takes %zu",
                           strlen(url->path), most);
    if (rest.at == rest.end)
        return evl_no_trouble;
    if (!url_take_prefix(&rest, "?db="))
        return url_malformed("after the socket's path may stand only ?db=N");
    return url_parse_number(&url->db, rest, "database", 0, INT_MAX, words);
}

struct trouble evl_url_list(struct url_list *ret, const char *text) {
    struct part rest = {text, text + strlen(text)};
    const char *space = strchr(text, ' ');

    *ret = (struct url_list){{{text, strlen(text)}}, 1};
    if (!url_take_prefix(&rest, "quorum:"))
        return space && strstr(space, "://") ? url_malformed("it stands for one server; " SEVERAL) : evl_no_trouble;
    ret->count = 0;
    while (rest.at < rest.end) {
        struct part url = url_take_until(&rest, " ");
        (void)url_take_prefix(&rest, " ");
        if (url.at == url.end)
            continue;
        if (ret->count == EVLOCK_NODES_MAX)
            return url_malformed("there are more URLs than a client can have nodes");
        ret->urls[ret->count].at = url.at;
        ret->urls[ret->count++].len = (size_t)(url.end - url.at);
    }
    return ret->count ? evl_no_trouble : url_malformed("after \"quorum:\" must stand a URL for each server");
}

/* Of what is spoken to over TCP. */
static bool url_take_scheme(struct url *url, struct part *rest) {
    static const struct {
        const char *text;
        enum url_kind kind;
        bool tls;
    } schemes[] = {
        {"redis://", URL_SERVER, false},
        {"rediss://", URL_SERVER, true},
        {"valkey://", URL_SERVER, false},
        {"valkeys://", URL_SERVER, true},
        {"redis+sentinel://", URL_SENTINELS, false},
        {"rediss+sentinel://", URL_SENTINELS, true},
        {"valkey+sentinel://", URL_SENTINELS, false},
        {"valkeys+sentinel://", URL_SENTINELS, true},
        {"redis-sentinel://", URL_SENTINELS, false},
        {"rediss-sentinel://", URL_SENTINELS, true},
        {"redis+cluster://", URL_CLUSTER, false},
        {"rediss+cluster://", URL_CLUSTER, true},
        {"valkey+cluster://", URL_CLUSTER, false},
        {"valkeys+cluster://", URL_CLUSTER, true},
    };

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (url_take_prefix(rest, schemes[i].text)) {
            url->kind = schemes[i].kind;
            url->tls = schemes[i].tls;
            return true;
        }
    return false;
}

struct trouble evl_url_parse(struct url *ret_url, const char *text, size_t len, struct words *words) {
    struct url url = {0};
    struct part rest = {text, text + len};
    struct trouble trouble;
    for (const char *c = text; c < rest.end; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return evl_trouble(words, EVLOCK_EURL,
                               "byte %td is blank or unprintable; take it away, or write it as %%%02X", c - text + 1,
                               (unsigned)*c);
    if (url_take_scheme(&url, &rest))
        trouble = url_parse_tcp(&url, rest, words);
    else if (url_take_prefix(&rest, "unix://"))
        trouble = url_parse_unix(&url, rest, words);
    else if (memmem(text, len, "://", 3))
        trouble = (struct trouble){EVLOCK_ESCHEME, "the scheme must be " SCHEMES};
    else
        trouble = url_malformed("it must begin with " SCHEMES);
    if (trouble.status == EVLOCK_OK)
        *ret_url = url;
    else
        evl_url_free(&url);
    return trouble;
}

bool evl_url_is_same_server(const struct url *one, const struct url *other) {
    if (one->path || other->path)
        return one->path && other->path && strcmp(one->path, other->path) == 0;
    return one->port == other->port && strcasecmp(one->host, other->host) == 0;
}

static int url_make(struct url *ret_url, const struct url *url, const char *host, int port, bool literal) {
    char *copy = evl_dup(host, strlen(host));

    if (!copy)
        return EVLOCK_ENOMEM;
    *ret_url = (struct url){.host = copy, .port = port, .literal = literal, .tls = url->tls, .db = url->db};
    return EVLOCK_OK;
}

int evl_url_take_address(struct url *ret_url, const struct url *url, unsigned index) {
    const struct url_address first = {url->host, url->port, url->literal};
    const struct url_address *address = index == 0 ? &first : &url->others[index - 1];

    assert(index < evl_url_addresses(url));
    return url_make(ret_url, url, address->host, address->port, address->literal);
}

int evl_url_announced(struct url *ret_url, const struct url *url, const char *host, int64_t port) {
    struct in_addr ignored;

    if (!host[0] || strlen(host) > NAME_MAX || port < 1 || port > 65535)
        return EVLOCK_EURL;
    return url_make(ret_url, url, host, (int)port, url_is_ipv6(host) || inet_pton(AF_INET, host, &ignored) == 1);
}

void evl_url_write_address(const struct url *url, char ret[EVLOCK_ADDRESS_SIZE]) {
    bool v6 = url->host && strchr(url->host, ':');

    if (url->path)
        snprintf(ret, EVLOCK_ADDRESS_SIZE, "%s", url->path);
    else if (!url->host)
        ret[0] = '\0';
    else
        snprintf(ret, EVLOCK_ADDRESS_SIZE, v6 ? "[%.*s]:%d" : "%.*s:%d", HOST_SHOWN, url->host, url->port);
}

void evl_url_forget_login(struct url *url) {
    if (url->password)
        explicit_bzero(url->password, strlen(url->password));
    evl_free(url->user);
    evl_free(url->password);
    url->user = url->password = NULL;
}

void evl_url_free(struct url *url) {
    evl_url_forget_login(url);
    evl_free(url->host);
    evl_free(url->path);
    evl_free(url->master);
    for (unsigned i = 0; i < url->other_count; i++)
        evl_free(url->others[i].host);
    evl_free(url->others);
    *url = (struct url){0};
}

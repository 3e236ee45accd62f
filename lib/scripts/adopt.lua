-- Tells how long the lock will hold the token. KEYS: lock. ARGV: token.
-- Its ttl. 0: the token is not there, or about to go. -1: it has no expiry.
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then return found end
if found ~= ARGV[1] then return 0 end
return redis.pcall('PTTL', KEYS[1])

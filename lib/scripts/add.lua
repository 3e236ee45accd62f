-- Adds to the lock's ttl if it holds the token. KEYS: lock. ARGV: token, what to add in ms.
-- The ttl that it has now. 0: the token is not there. -1: it has no expiry to add to.
--@ include owned.lua
local left = redis.pcall('PTTL', KEYS[1])
if type(left) == 'table' then return left end
if left < 0 then return -1 end
local ttl = left + tonumber(ARGV[2])
if ttl <= 0 then return redis.error_reply('ERR a ttl must be positive') end
-- Not tostring(): it would round a large number.
local done = redis.pcall('PEXPIRE', KEYS[1], string.format('%.0f', ttl))
if type(done) == 'table' then return done end
return ttl

-- Gives the lock at least this ttl if it holds the token; a longer one stays. KEYS: lock. ARGV: token, ttl in ms.
-- The ttl that it has now, at least. 0: the token is not there. -1: it has no expiry, and keeps none.
--@ include owned.lua
local ttl = tonumber(ARGV[2])
local left = redis.pcall('PTTL', KEYS[1])
if type(left) == 'table' then return left end
if left > ttl then return left end
if left < 0 then return -1 end
local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(done) == 'table' then return done end
return ttl

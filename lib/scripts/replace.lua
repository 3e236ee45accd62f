-- Gives the lock this ttl, longer or shorter, if it holds the token. KEYS: lock. ARGV: token, ttl in ms.
-- The ttl. 0: the token is not there.
--@ include owned.lua
local ttl = tonumber(ARGV[2])
if ttl <= 0 then return redis.error_reply('ERR a ttl must be positive') end
local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(done) == 'table' then return done end
return ttl

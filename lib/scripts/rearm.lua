-- Gives the lock to a token that holds a quorum elsewhere, if nobody has it here; a longer ttl of its own stays.
-- KEYS: lock. ARGV: token, ttl in ms.
-- The ttl that it has now, at least. 0: another has it.
local set = redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if set then
  if set.err then return set end
  return tonumber(ARGV[2])
end
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then return found end
if found ~= ARGV[1] then return 0 end
local ttl = tonumber(ARGV[2])
local left = redis.pcall('PTTL', KEYS[1])
if type(left) == 'table' then return left end
if left > ttl then return left end
if left < 0 then return ttl end
local done = redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(done) == 'table' then return done end
return ttl

-- Gives the lock to a token that holds a quorum elsewhere, if nobody has it here; a longer ttl of its own stays.
-- KEYS: lock. ARGV: token, ttl in ms.
-- The ttl that it has now, at least. 0: another has it. -1: it has no expiry, and keeps none.
local set = redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if set then
  if set.err then return set end
  return tonumber(ARGV[2])
end
--@ include renew.lua

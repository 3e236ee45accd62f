-- Deletes the lock if it holds the token. KEYS: lock. ARGV: token.
-- 1: deleted. 0: the token is not there.
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then return found end
if found ~= ARGV[1] then return 0 end
return redis.pcall('DEL', KEYS[1])

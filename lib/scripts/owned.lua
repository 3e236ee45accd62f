-- Included at the beginning of what is for who has the lock alone. KEYS: lock. ARGV: token.
-- 0: the token is not there.
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then return found end
if found ~= ARGV[1] then return 0 end

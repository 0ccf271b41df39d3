-- Shows a job.
--
-- ARGV     1 namespace, 2 id
-- Returns  as show_job; missing fields are false
return show_job(ARGV[2])

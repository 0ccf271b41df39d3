-- Shows a job.
--
-- ARGV     1 namespace, 2 id
-- Returns  as show_job; the fields of what is not there are false
return show_job(ARGV[2])

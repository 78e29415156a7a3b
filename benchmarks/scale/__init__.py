"""Large problems, one script each: Mercer and a rival in one process, judged by held-out error."""

DROP TABLE timelines;

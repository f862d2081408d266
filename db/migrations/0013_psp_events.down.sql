DROP TABLE psp_events;

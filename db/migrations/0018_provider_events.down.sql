ALTER INDEX provider_events_age RENAME TO psp_events_age;
ALTER TABLE provider_events RENAME CONSTRAINT provider_events_event_id_check TO psp_events_event_id_check;
ALTER TABLE provider_events RENAME CONSTRAINT provider_events_verdict TO psp_events_verdict;
ALTER TABLE provider_events RENAME CONSTRAINT provider_events_pkey TO psp_events_pkey;
ALTER TABLE provider_events RENAME TO psp_events;

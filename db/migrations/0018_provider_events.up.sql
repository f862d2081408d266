-- The name that everything else uses for what the payment provider sends.
ALTER TABLE psp_events RENAME TO provider_events;
ALTER TABLE provider_events RENAME CONSTRAINT psp_events_pkey TO provider_events_pkey;
ALTER TABLE provider_events RENAME CONSTRAINT psp_events_verdict TO provider_events_verdict;
ALTER TABLE provider_events RENAME CONSTRAINT psp_events_event_id_check TO provider_events_event_id_check;
ALTER INDEX psp_events_age RENAME TO provider_events_age;

-- site_id: where the device that gave a file was then; the rights at that site count. Empty for what people uploaded.
ALTER TABLE file ADD COLUMN site_id UUID;
UPDATE file SET site_id = (SELECT controller.site_id FROM controller WHERE controller.id = file.controller_id)
WHERE controller_id IS NOT NULL;

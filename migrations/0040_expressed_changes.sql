-- A change that was staged in the words of the model: what the adapter made of it in the vendor's own features. These are
-- planned and applied. Empty where the change is in the vendor's words already, and where the adapter was not asked yet.
ALTER TABLE change ADD COLUMN expressed_as JSONB;

DROP TRIGGER never_deleted ON orders;
DROP TRIGGER never_deleted ON products;
DROP FUNCTION refuse_delete();

/** Style sheets are imported for their effect: the bundle writes them to a file of their own. */

declare module "*.css";

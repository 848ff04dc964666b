/** The version of this package, which is that of the server it was released with. */
export const version = "0.0.0-dev";

/** Paths in the syntax of imports: quoted, without escapes. */

export const quotedPath = (path: string): string => `"${path}"`

/** True if an import can name the file at a path: a backslash would be read as a slash. */
export const isQuotable = (path: string): boolean => !/["\n\r\\]/.test(path)

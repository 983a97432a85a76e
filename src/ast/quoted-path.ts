/** Paths as imports write them: in quotes, as they are. There are no escapes in them. */

export const quotedPath = (path: string): string => `"${path}"`

/** Whether an import can name the file at a path: a backslash is read as a slash. */
export const isQuotable = (path: string): boolean => !/["\n\r\\]/.test(path)

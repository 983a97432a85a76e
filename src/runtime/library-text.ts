/** Declarations of vendor libraries, called through their C interface. Files, calls and arguments are data (`data/libraries/`). */

/**
 * An argument of a call: a number; a name (`handle`, `variant`, a created object, a size, or a buffer, passed by address); an
 * array of an axis or its number of entries; or a float, passed by host address.
 */
export type LibraryArgument =
  | number
  | string
  | { readonly of: 'offsets' | 'indices' | 'entries'; readonly axis: string }
  /** A float constant, or a scalar by name. */
  | { readonly float: number | string }

/** An object created by a call, whose first argument is the address of the handle. */
export interface LibraryObject {
  readonly into: string
  readonly call: string
  readonly arguments: readonly LibraryArgument[]
  readonly destroy: string
}

export interface Routine {
  readonly name: string
  /** Name of the equivalent kernel. */
  readonly computes: string
  /** Algorithms, by name. */
  readonly variants: Readonly<Record<string, number>>
  readonly make: readonly LibraryObject[]
  /** Leading arguments of every call of the routine. */
  readonly arguments: readonly LibraryArgument[]
  /** Call that returns the size of its workspace in bytes. */
  readonly size?: string
  /** Call that is made once with the arguments and the workspace. */
  readonly prepare?: string
  readonly run: string
}

export interface LibraryText {
  readonly name: string
  /** File name of the library without its extension. */
  readonly file: string
  /** Folder next to the compiler's, in installations with a folder per library. */
  readonly folder: string
  /** Libraries that have to be loaded first. */
  readonly needs: readonly string[]
  readonly create: string
  readonly destroy: string
  /** Call that sets the stream. */
  readonly stream: string
  /** Call that returns the version as a number, and the units of its parts (1000 for the major version, for example). */
  readonly version: { readonly call: string; readonly units: readonly number[] }
  /** Statuses of `prepare` for routines without a preparation. */
  readonly unsupported: readonly number[]
  /** Workspace for the library, because its own allocations cannot be recorded in a graph. */
  readonly workspace?: { readonly call: string; readonly bytes: number }
  /** The parameters of each call in C; each returns a status, 0 for success. */
  readonly prototypes: Readonly<Record<string, string>>
  readonly routines: readonly Routine[]
}

/**
 * Libraries of a device's vendor, called through their C interface: which files, which calls and what they are given is
 * text (`data/libraries/`), of which a device knows how to read it and nothing else.
 */
/**
 * An argument of a call. A number as it is; text: `handle`, `variant`, an object that was made, a size, or the address of a
 * buffer; an array of an axis, or how many entries it has; the address of a float in host memory.
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
  /** The kernel that it computes. */
  readonly computes: string
  /** Algorithms, by name. */
  readonly variants: Readonly<Record<string, number>>
  readonly make: readonly LibraryObject[]
  /** Leading arguments of every call of the routine. */
  readonly arguments: readonly LibraryArgument[]
  /** Fills in how many bytes of memory it needs. */
  readonly size?: string
  /** Called once with that memory, after the arguments. */
  readonly prepare?: string
  readonly run: string
}

export interface LibraryText {
  readonly name: string
  /** File name of the library without its extension. */
  readonly file: string
  /** Folder next to the compiler's, in installations with a folder per library. */
  readonly folder: string
  /** Libraries to be loaded before. */
  readonly needs: readonly string[]
  readonly create: string
  readonly destroy: string
  /** Says on which stream. */
  readonly stream: string
  /** A call that fills in a number, of which the parts of the version are multiples of these. */
  readonly version: { readonly call: string; readonly units: readonly number[] }
  /** Statuses of `prepare` that mean: there is nothing to prepare. */
  readonly unsupported: readonly number[]
  /** Workspace for the library, because its own allocations cannot be recorded in a graph. */
  readonly workspace?: { readonly call: string; readonly bytes: number }
  /** The parameters of each call in C; each returns a status, 0 for success. */
  readonly prototypes: Readonly<Record<string, string>>
  readonly routines: readonly Routine[]
}

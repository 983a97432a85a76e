/** What the names of a program mean, over all its files. Built by `loadFiles` and `programOf`. */
import type { Source } from './diagnostic.ts'
import type { Decl, File, Format, Kernel, Monoid, Schedule } from './nodes.ts'

/**
 * The names one file can use: its own declarations, what it imports, and the schedules of its kernels. Names
 * are the file's own: an import that renames has the new name here. Kernels, formats and monoids share one name
 * space; schedules are keyed by their kernel's name here, then by their own.
 */
export interface Scope {
  readonly kernels: ReadonlyMap<string, Kernel>
  readonly formats: ReadonlyMap<string, Format>
  readonly monoids: ReadonlyMap<string, Monoid>
  readonly schedules: ReadonlyMap<string, ReadonlyMap<string, Schedule>>
  /** Names that two imported files declare, in none of the maps above; using one is an error. */
  readonly ambiguous: ReadonlyMap<string, readonly Decl[]>
}

/**
 * A program is the scope of its entry file, plus the scopes of all files. A declaration's own names (the monoid a
 * kernel reduces with, the format a schedule applies) mean what they mean in its file: `scopeOf(program, decl)`.
 */
export interface Program extends Scope {
  readonly entry: string
  readonly files: ReadonlyMap<string, File>
  readonly sources: ReadonlyMap<string, Source>
  readonly scopes: ReadonlyMap<string, Scope>
}

/** The scope in which the names inside a declaration are resolved. */
export function scopeOf(program: Program, decl: Decl): Scope {
  return program.scopes.get(decl.span.source) ?? program
}

/** Arguments of `load`: texts, paths and options. */
import type { Source } from '../../ast/diagnostics/diagnostic.ts'
import {
  expectFields,
  FLAG,
  FUNCTION,
  SIGNAL,
  TEXT,
  type ValueKind,
} from '../../ast/diagnostics/value-kinds.ts'
import type { ReadText } from '../../ast/imports/resolve-path.ts'
import type { WorkOptions } from '../../ast/work.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'

export interface LoadOptions extends WorkOptions {
  /** Returns the source of an imported file. Default: the file system; `fetch` in browsers. */
  readonly read?: ReadText | undefined
  /** Name of the source in errors, and base of relative imports. */
  readonly name?: string | undefined
  /** Folder to which imports are restricted, in addition to the package. Default: no restriction. */
  readonly root?: string | undefined
  /** `false`: device code of instructions and memories must come from the package. */
  readonly instructions?: boolean | undefined
}

const FOLDER = { holds: (x: unknown) => typeof x === 'string' && x !== '', expected: "a folder: './kernels'" }

/** Checks the options of `load`. `more`: further options of this host. Throws SptError `api/argument`, `api/unknown-option`. */
export const checkLoadOptions = <T extends LoadOptions>(
  options: T,
  more: Readonly<Record<Exclude<keyof T & string, keyof LoadOptions>, ValueKind>>,
): void =>
  expectFields<LoadOptions>('load', options, {
    read: FUNCTION,
    name: TEXT,
    root: FOLDER,
    instructions: FLAG,
    signal: SIGNAL,
    onProgress: FUNCTION,
    ...more,
  })

/** Returns true for strings that look like a path instead of source, because declarations contain blanks. */
export const isOddPath = (s: string): boolean =>
  typeof s === 'string' && /^[\w.~@:/\\-]+$/.test(s.trim()) && !s.startsWith('//')

/** A path, or a `URL`, declared by one field so that no host types are required. */
export type TextOrUrl = string | { readonly href: string }

export const textOf = (given: TextOrUrl): string =>
  isRecord(given) && typeof given.href === 'string' ? given.href : (given as string)

export function namedText(text: string, name = 'text.spt'): Source {
  expectArgument(typeof text === 'string', 'a program', text, 'its text, or the path of a .spt file')
  return { name, text }
}

/** Returns true for a single line that ends in `.spt`, which is a path; other strings are source. */
export const isPath = (s: string): boolean =>
  typeof s === 'string' && !s.includes('\n') && /\.spt$/.test(s.trim())

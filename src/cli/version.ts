import { version } from '../io/package.ts'
import type { Io } from './io.ts'

/** Prints the version if that is what the first word asks for: without what the commands need. */
export function printsVersion(first: string | undefined, io: Io): boolean {
  if (first !== '-v' && first !== '--version') return false
  io.out(`sparsetile ${version()}\n`)
  return true
}

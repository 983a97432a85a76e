/// <reference lib="esnext.disposable" preserve="true" />
/** Symbols of explicit resource management (`using`), for hosts that lack them. */

/** Defines a missing symbol of JavaScript; the registered symbol agrees with other libraries that do the same. */
function wellKnown(name: 'dispose' | 'asyncDispose'): symbol {
  const known = (Symbol as { readonly dispose?: symbol; readonly asyncDispose?: symbol })[name]
  if (known) return known
  const value = Symbol.for(`Symbol.${name}`)
  Object.defineProperty(Symbol, name, { value })
  return value
}

export const DISPOSE: typeof Symbol.dispose = wellKnown('dispose') as typeof Symbol.dispose
export const ASYNC_DISPOSE: typeof Symbol.asyncDispose = wellKnown(
  'asyncDispose',
) as typeof Symbol.asyncDispose

/** Runs `end` at the end of the block of `using _ = atEnd(end)`. */
export const atEnd = (end: () => void): Disposable => ({ [DISPOSE]: end })

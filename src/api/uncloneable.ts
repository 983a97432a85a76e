/**
 * A base class that refuses `structuredClone`. What users hold: more than its fields, so that a copy of these would be a
 * shell that does nothing.
 */

const UNCLONEABLE = Symbol(
  'sparsetile: what load and a kernel give stays in its thread; send the text of the program and kernel.toJSON(), and there `(await load(text)).kernel(name).replay(steps)`. It',
)

export abstract class Uncloneable {
  /** `structuredClone` and `postMessage` refuse symbols, and say what they are called. */
  protected readonly uncloneable = UNCLONEABLE
}

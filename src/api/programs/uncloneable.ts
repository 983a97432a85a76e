/** A base class that rejects `structuredClone`, because API objects have state outside of their fields. */

const UNCLONEABLE = Symbol(
  'sparsetile: what load and a kernel give stays in its thread; send the text of the program and kernel.toJSON(), and there `(await load(text)).kernel(name).replay(steps)`. It',
)

export abstract class Uncloneable {
  /** A symbol, which `structuredClone` and `postMessage` reject with its description. */
  protected readonly uncloneable = UNCLONEABLE
}

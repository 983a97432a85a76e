/** `node --import sparsetile/register`: Node imports plans, such as `./product.spt?plan&target=cpu`. */
import { register } from 'node:module'

register('./module-hooks.js', import.meta.url)

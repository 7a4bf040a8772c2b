// The SDK of Restate uses `Promise.withResolvers`, which Node has from 22 on. To be imported before the SDK.
Promise.withResolvers ??= function withResolvers() {
  let resolve;
  let reject;
  const promise = new this((fulfil, refuse) => {
    resolve = fulfil;
    reject = refuse;
  });
  return { promise, resolve, reject };
};

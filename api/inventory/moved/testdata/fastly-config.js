export default function config() {
  return {
    jwtSecret: dict.get("jwt_secret"),
    admin: {
      path: "/_queue",
      password: "correct horse",
    },
    queue: {
      // seconds
      refreshInterval: 5,
      cookieExpiry: 24 * 60 * 60,
      automatic: 15,
      automaticQuantity: 5,
    },
  };
}

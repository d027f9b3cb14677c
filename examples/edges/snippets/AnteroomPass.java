import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Verifies passes of Anteroom with ES256. With a good pass a request may go to the application, in every other case it goes to Anteroom. Needs
 * nothing but Java 17.
 */
public final class AnteroomPass {
    private static final Base64.Decoder DECODER = Base64.getUrlDecoder();
    private final Map<String, PublicKey> keys = new HashMap<>(); // by the encoded header of their passes: no pass chooses its algorithm
    private final String issuer, zone, room, cookie;

    /** Takes what /.well-known/anteroom/pass.pem has, and what a pass must be for. The cookie is __anteroom_pass, with "_" and the room's suffix. */
    public AnteroomPass(String pem, String issuer, String zone, String room, String cookie) throws GeneralSecurityException {
        this.issuer = issuer;
        this.zone = zone;
        this.room = room;
        this.cookie = cookie;
        Matcher m = Pattern.compile("kid: (\\S+)\\s+-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\\s]+)-----END").matcher(pem);
        while (m.find()) {
            byte[] der = Base64.getMimeDecoder().decode(m.group(2));
            String head = "{\"alg\":\"ES256\",\"typ\":\"JWT\",\"kid\":\"" + m.group(1) + "\"}";
            keys.put(Base64.getUrlEncoder().withoutPadding().encodeToString(head.getBytes(UTF_8)), KeyFactory.getInstance("EC").generatePublic(new X509EncodedKeySpec(der)));
        }
    }

    /** Reports whether the Cookie header has one good pass. Now is in seconds since 1970. */
    public boolean admits(String cookies, long now) {
        List<String> found = Arrays.stream(cookies.split(";")).map(String::trim).filter(pair -> pair.startsWith(cookie + "=")).toList();
        if (found.size() != 1) return false;
        String pass = found.get(0).substring(cookie.length() + 1);
        String[] parts = pass.split("\\.", -1);
        if (pass.length() > 1024 || parts.length != 3 || !keys.containsKey(parts[0])) return false;
        try {
            Signature es256 = Signature.getInstance("SHA256withECDSAinP1363Format");
            es256.initVerify(keys.get(parts[0]));
            es256.update((parts[0] + "." + parts[1]).getBytes(UTF_8));
            if (!es256.verify(DECODER.decode(parts[2]))) return false;
            // What is signed was written by Anteroom: one flat object, in which only issuer and zone could have anything to escape.
            String claims = new String(DECODER.decode(parts[1]), UTF_8);
            return "pass".equals(text(claims, "use")) && issuer.equals(text(claims, "iss")) && zone.equals(text(claims, "aud")) && room.equals(text(claims, "room"))
                && text(claims, "sid") != null && number(claims, "nbf") <= now && now < number(claims, "exp");
        } catch (GeneralSecurityException | IllegalArgumentException bad) {
            return false;
        }
    }

    private static String text(String claims, String name) {
        Matcher m = Pattern.compile("[{,]\"" + name + "\":\"([^\"\\\\]+)\"").matcher(claims);
        return m.find() ? m.group(1) : null;
    }

    private static long number(String claims, String name) {
        Matcher m = Pattern.compile("[{,]\"" + name + "\":(\\d{1,18})[,}]").matcher(claims);
        if (!m.find()) throw new IllegalArgumentException(name);
        return Long.parseLong(m.group(1));
    }

    /** Reads the vectors of ticket/pass/testdata/vectors.json as lines: GOOD or BAD, a tab, and the Cookie header. */
    public static void main(String[] args) throws IOException, GeneralSecurityException {
        AnteroomPass edge = new AnteroomPass(Files.readString(Path.of(args[0])), "anteroom", args[2], args[3], "__anteroom_pass");
        int wrong = 0, read = 0;
        for (String line : Files.readAllLines(Path.of(args[1]))) {
            String[] cells = line.split("\t", 2);
            read++;
            if (edge.admits(cells[1], Long.parseLong(args[4])) != cells[0].equals("GOOD")) {
                wrong++;
                System.out.println("wrong: line " + read);
            }
        }
        System.out.println(read + " vectors, " + wrong + " wrong");
        System.exit(wrong > 0 || read == 0 ? 1 : 0);
    }
}
